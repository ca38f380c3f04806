// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import rbacv1 "k8s.io/api/rbac/v1"

// rules of one role.
func rules(list ...rbacv1.PolicyRule) []rbacv1.PolicyRule { return list }

const (
	notAllowed = "the user has no right to use the object that a field names"
	chooses    = "the request sets fields that need another right"
	elsewhere  = `"storageType":"S3","s3":{"path":"bucket/key","endpoint":"https://evil.example.com"}`
	gcsWithACA = `"storageType":"GCS","gcs":{"path":"bucket/key","caSecret":"store"}`
	ofMembers  = `{"metadata":{"name":"b"},"spec":{"size":3,"version":"3.6.16",`
)

// roles are the rows of docs/explanation/security.md.
var roles = []role{
	{"get-clusters", rules(ofGroup("get", "etcdclusters")), []try{
		{do: "GET etcdclusters/owned", code: 200, says: `"awsSecret":"store"`},
		{do: "GET etcdclusters", code: 403},
		{do: "GET etcdclusters/owned/health", code: 403},
		{do: "GET etcdbackups/good", code: 403},
	}},
	{"list-clusters", rules(ofGroup("list watch", "etcdclusters")), []try{
		{do: "GET etcdclusters", code: 200, says: `"awsSecret":"store"`},
		{do: "GET etcdclusters?watch=true&timeoutSeconds=1", code: 200},
		{do: "GET etcdbackups", code: 403},
		{do: "DELETE etcdclusters", code: 403},
	}},
	{"create-clusters", rules(ofGroup("create", "etcdclusters")), []try{
		{do: "POST etcdclusters", body: ofMembers + `"repository":"evil.example.com/etcd"}}`, code: 201},
		{do: "POST etcdclusters", body: ofMembers + `"TLS":{"static":{"operatorSecret":"store","member":{"peerSecret":"store","serverSecret":"store"}}}}}`, code: 403, says: notAllowed},
		{do: "POST etcdclusters", body: ofMembers + `"pod":{"etcdEnv":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"store","key":"credentials"}}}]}}}`, code: 403, says: "spec.pod.etcdEnv[0].valueFrom.secretKeyRef.name"},
		{do: "POST etcdclusters", body: ofMembers + `"pod":{"imagePullSecrets":[{"name":"store"}]}}}`, code: 403, says: "spec.pod.imagePullSecrets[0].name"},
		{do: "POST etcdclusters", body: ofMembers + `"backup":{` + s3OfTheOwner + `}}}`, code: 403, says: "spec.backup.s3.awsSecret"},
		{do: "POST etcdclusters", body: ofMembers + `"backup":{` + elsewhere + `,"serviceAccountName":"mover"}}}`, code: 403, says: "spec.backup.serviceAccountName"},
		{do: "DELETE etcdclusters/owned", code: 403},
		{do: "PATCH etcdclusters/owned", body: `{"spec":{"size":1}}`, code: 403},
	}},
	{"create-clusters-with-a-secret", rules(ofGroup("create", "etcdclusters"), ofCore("use", "secrets", "store")), []try{
		{do: "POST etcdclusters", body: ofMembers + `"backup":{` + s3OfTheOwner + `}}}`, code: 201},
	}},
	{"update-clusters", rules(ofGroup("get update", "etcdclusters")), []try{
		{do: "PUT etcdclusters/kept", body: `{"metadata":{"name":"kept"},"spec":{"size":5,"version":"3.6.16","repository":"evil.example.com/etcd"}}`, code: 200},
		{do: "PUT etcdclusters/owned", body: `{"metadata":{"name":"owned"},"spec":{"size":5,"version":"3.6.16","backup":{"schedule":"@daily",` + s3OfTheOwner + `}}}`, code: 200},
		{do: "PUT etcdclusters/owned", body: `{"metadata":{"name":"owned"},"spec":{"size":5,"version":"3.6.16","backup":{"storageType":"S3","s3":{"path":"bucket/key","awsSecret":"store","endpoint":"https://evil.example.com"}}}}`, code: 403, says: notAllowed},
		{do: "PUT etcdclusters/new", body: `{"metadata":{"name":"new"},"spec":{"size":3,"version":"3.6.16"}}`, code: 404},
		{do: "DELETE etcdclusters/kept", code: 403},
	}},
	{"patch-clusters", rules(ofGroup("patch", "etcdclusters")), []try{
		{do: "PATCH etcdclusters/kept", body: `{"spec":{"deletionProtection":false,"repository":"evil.example.com/etcd"}}`, code: 200},
		{do: "PATCH etcdclusters/owned", body: `{"spec":{"backup":{` + elsewhere + `}}}`, code: 403, says: "spec.backup.s3.awsSecret"},
		{do: "PATCH etcdclusters/owned", body: `{"spec":{"backup":{"storageType":"S3","s3":{"awsSecret":null,"endpoint":"https://evil.example.com"}}}}`, code: 200},
		{do: "PATCH etcdclusters/secured", body: `{"spec":{"size":5}}`, code: 200},
		{do: "PATCH etcdclusters/secured", body: `{"spec":{"pod":{"annotations":{"a":"b"}}}}`, code: 403, says: "spec.TLS.static"},
		{do: "PATCH etcdclusters/secured", body: `{"spec":{"repository":"evil.example.com/etcd"}}`, code: 403, says: "spec.TLS.static"},
		{do: "PATCH etcdclusters/new?fieldManager=x", body: `{"apiVersion":"etcd.database.coreos.com/v1beta2","kind":"EtcdCluster","metadata":{"name":"new"},"spec":{"size":3}}`, code: 403},
		{do: "POST etcdclusters/owned/restart", body: "{}", code: 403},
		{do: "DELETE etcdclusters/kept", code: 403},
	}},
	{"patch-clients", rules(ofGroup("patch", "etcdclusters")), []try{
		{do: "PATCH etcdclusters/kept", body: `{"spec":{"clients":[{"name":"thief","commonName":"root"}]}}`, code: 200},
		{do: "PATCH etcdclusters/kept", body: `{"spec":{"clients":[{"name":"thief","commonName":"etcd-peer"}]}}`, code: 422, says: "spec.clients[0].commonName"},
		{do: "GET secrets/kept-thief-binding", code: 403},
		{do: "POST pods", body: "{}", code: 403},
	}},
	{"delete-clusters", rules(ofGroup("delete", "etcdclusters")), []try{
		{do: "DELETE etcdclusters/kept", code: 403, says: "deletionProtection"},
		{do: "DELETE etcdclusters/owned", code: 200},
		{do: "DELETE etcdclusters", code: 403},
		{do: "DELETE etcdbackups/good", code: 403},
	}},
	{"delete-all-clusters", rules(ofGroup("deletecollection", "etcdclusters")), []try{
		{do: "DELETE etcdclusters?labelSelector=none", code: 200},
		{do: "DELETE etcdbackups", code: 403},
	}},
	{"status", rules(ofGroup("patch", "etcdclusters/status")), []try{
		{do: "PATCH etcdclusters/owned/status", body: `{"spec":{"repository":"evil.example.com/etcd"},"status":{"phase":"Running"}}`, code: 200, says: `"repository":"quay.io/coreos/etcd"`},
		{
			do: "PATCH etcdclusters/owned/status", code: 403, says: "status.recovery.source.backup.s3.awsSecret",
			body: `{"status":{"recovery":{"id":"x","trigger":"Restore","phase":"Pending","source":{"restore":"r","backup":{"storageType":"S3","s3":{"path":"b/k","awsSecret":"store","endpoint":"https://evil.example.com"}}}}}}`,
		},
		{do: "PATCH etcdclusters/owned", body: `{"spec":{"size":1}}`, code: 403},
	}},
	{"scale", rules(ofGroup("patch", "etcdclusters/scale")), []try{
		{do: "PATCH etcdclusters/owned/scale", body: `{"spec":{"replicas":0}}`, code: 422, says: "gives every member a volume"},
		{do: "PATCH etcdclusters/owned/scale", body: `{"spec":{"replicas":5}}`, code: 200},
		{do: "PATCH etcdclusters/owned", body: `{"spec":{"size":1}}`, code: 403},
	}},
	{"backup", rules(ofGroup("create", "etcdclusters/backup")), []try{
		{do: "POST etcdclusters/secured/backup?dryRun=All", body: `{"metadata":{"name":"mine","labels":{"why":"upgrade"}}}`, code: 201},
		{do: "POST etcdclusters/secured/backup", body: `{"spec":{` + elsewhere + `}}`, code: 403, says: chooses},
		{do: "POST etcdclusters/secured/backup", body: `{"spec":{"verify":"Hash"}}`, code: 403, says: "spec.verify"},
		{do: "POST etcdclusters/secured/backup", body: `{"spec":{"serviceAccountName":"mover"}}`, code: 403, says: "spec.serviceAccountName"},
		{do: "POST etcdclusters/secured/backup", body: "{}", code: 201, says: `"awsSecret":"store"`},
		{do: "POST etcdbackups", body: `{"metadata":{"name":"x"},"spec":{"etcdCluster":{"name":"secured"},` + elsewhere + `}}`, code: 403},
		{do: "GET etcdbackups", code: 403},
	}},
	{"backup-elsewhere", rules(ofGroup("create", "etcdclusters/backup", "etcdbackups")), []try{
		{do: "POST etcdclusters/secured/backup?dryRun=All", body: `{"spec":{"verify":"Hash"}}`, code: 201, says: `"verify":"Hash"`},
		{do: "POST etcdclusters/secured/backup", body: `{"spec":{` + s3OfTheOwner + `}}`, code: 403, says: notAllowed},
		{do: "POST etcdclusters/secured/backup", body: `{"spec":{` + elsewhere + `}}`, code: 201},
	}},
	{"restore", rules(ofGroup("create", "etcdclusters/restore")), []try{
		{do: "POST etcdclusters/owned/restore", body: `{"spec":{"backup":{"name":"series"}}}`, code: 403, says: chooses},
		{do: "POST etcdclusters/owned/restore", body: `{"spec":{"backupStorageType":"S3","s3":{"path":"b/k","endpoint":"https://evil.example.com"}}}`, code: 403, says: "spec.backupStorageType, spec.s3"},
		{do: "POST etcdclusters/owned/restore", body: "{}", code: 201, says: `"revision":81`},
		{do: "POST etcdrestores", body: `{"metadata":{"name":"x"},"spec":{"etcdCluster":{"name":"owned"},"backup":{"name":"good"}}}`, code: 403},
	}},
	{"recover", rules(ofGroup("create", "etcdclusters/recover")), []try{
		{do: "POST etcdclusters/owned/recover", body: "{}", code: 409, says: "quorum"},
		{do: "POST etcdclusters/owned/restore", body: "{}", code: 403},
	}},
	{"defrag", rules(ofGroup("create", "etcdclusters/defrag")), []try{
		{do: "POST etcdclusters/owned/defrag", body: "{}", code: 201},
		{do: "POST etcdclusters/owned/restart", body: "{}", code: 403},
	}},
	{"moveleader", rules(ofGroup("create", "etcdclusters/moveleader")), []try{
		{do: "POST etcdclusters/owned/moveleader", body: "{}", code: 409},
		{do: "POST etcdclusters/owned/defrag", body: "{}", code: 403},
	}},
	{"restart", rules(ofGroup("create", "etcdclusters/restart")), []try{
		{do: "POST etcdclusters/owned/restart", body: "{}", code: 201},
		{do: "POST etcdclusters/owned/moveleader", body: "{}", code: 403},
		{do: "PATCH etcdclusters/owned", body: `{"metadata":{"annotations":{"a":"b"}}}`, code: 403},
	}},
	{"replace", rules(ofGroup("create", "etcdclusters/replace")), []try{
		{do: "POST etcdclusters/owned/replace", body: "{}", code: 422, says: "spec.members"},
		{do: "POST etcdclusters/owned/restart", body: "{}", code: 403},
	}},
	{"health", rules(ofGroup("get", "etcdclusters/health")), []try{
		{do: "GET etcdclusters/owned/health", code: 200, says: "Creating"},
		{do: "GET etcdclusters/owned/members", code: 403},
		{do: "GET etcdclusters/owned", code: 403},
	}},
	{"members", rules(ofGroup("get", "etcdclusters/members")), []try{
		{do: "GET etcdclusters/owned/members", code: 200},
		{do: "GET etcdclusters/owned/health", code: 403},
	}},
	{"get-snapshot", rules(ofGroup("get", "etcdclusters/proxy")), []try{
		{do: "GET etcdclusters/owned/proxy/snapshot", code: 403, says: "The verb create on etcdclusters/proxy is missing"},
	}},
	{"create-backups", rules(ofGroup("create", "etcdbackups")), []try{
		{do: "POST etcdbackups", body: `{"metadata":{"name":"x"},"spec":{"etcdCluster":{"name":"owned"},` + elsewhere + `}}`, code: 201},
		{do: "POST etcdbackups", body: `{"metadata":{"name":"y"},"spec":{"etcdCluster":{"name":"owned"},` + s3OfTheOwner + `}}`, code: 403, says: "spec.s3.awsSecret"},
		{do: "POST etcdbackups", body: `{"metadata":{"name":"y"},"spec":{"etcdCluster":{"name":"owned"},"serviceAccountName":"mover",` + elsewhere + `}}`, code: 403, says: "spec.serviceAccountName"},
		{do: "POST etcdbackups", body: `{"metadata":{"name":"y"},"spec":{"etcdEndpoints":["https://owned-client:2379"],"clientTLSSecret":"store",` + elsewhere + `}}`, code: 403, says: "spec.clientTLSSecret"},
		{do: "POST etcdbackups", body: `{"metadata":{"name":"y"},"spec":{"etcdCluster":{"name":"owned"},"encryption":{"ageRecipientsSecret":"store"},` + elsewhere + `}}`, code: 403, says: "spec.encryption.ageRecipientsSecret"},
		{do: "PATCH etcdbackups/series", body: `{"spec":{"s3":{"endpoint":"https://evil.example.com"}}}`, code: 403},
		{do: "POST etcdclusters/owned/backup", body: "{}", code: 403},
	}},
	{"create-backups-with-a-secret", rules(ofGroup("create", "etcdbackups"), ofCore("use", "secrets", "store")), []try{
		{do: "POST etcdbackups", body: `{"metadata":{"name":"x"},"spec":{"etcdCluster":{"name":"owned"},` + s3OfTheOwner + `}}`, code: 201},
		{do: "POST etcdbackups", body: `{"metadata":{"name":"y"},"spec":{"etcdCluster":{"name":"owned"},` + gcsWithACA + `}}`, code: 201},
		{
			do: "POST etcdbackups", code: 403, says: "spec.job.annotations",
			body: `{"metadata":{"name":"z"},"spec":{"etcdCluster":{"name":"owned"},"job":{"annotations":{"a":"b"}},` + s3OfTheOwner + `}}`,
		},
		{
			do: "POST etcdbackups", code: 403, says: `ServiceAccount \"default\"`,
			body: `{"metadata":{"name":"z"},"spec":{"etcdCluster":{"name":"owned"},"job":{"env":[{"name":"HTTPS_PROXY","value":"http://x:1"}]},` + gcsWithACA + `}}`,
		},
	}},
	{"patch-backups", rules(ofGroup("patch", "etcdbackups")), []try{
		{do: "PATCH etcdbackups/series", body: `{"spec":{"backupPolicy":{"suspend":true}}}`, code: 200},
		{do: "PATCH etcdbackups/series", body: `{"spec":{"hold":true}}`, code: 200},
		{do: "PATCH etcdbackups/series", body: `{"spec":{"hold":false}}`, code: 200},
		{do: "PATCH etcdbackups/series", body: `{"spec":{"s3":{"endpoint":"https://evil.example.com"}}}`, code: 403, says: "spec.s3.awsSecret"},
		{do: "PATCH etcdbackups/series", body: `{"spec":{"job":{"annotations":{"sidecar.istio.io/userVolumeMount":"[]"}}}}`, code: 403, says: "spec.s3.awsSecret"},
		{do: "PATCH etcdbackups/good", body: `{"spec":{"serviceAccountName":"mover"}}`, code: 403, says: "spec.serviceAccountName"},
	}},
	{"delete-backups", rules(ofGroup("delete", "etcdbackups", "etcdrestores")), []try{
		{do: "DELETE etcdbackups/series", code: 200},
		{do: "DELETE etcdclusters/owned", code: 403},
	}},
	{"create-restores", rules(ofGroup("create", "etcdrestores")), []try{
		{do: "POST etcdrestores", body: `{"metadata":{"name":"x"},"spec":{"etcdCluster":{"name":"owned"},"backup":{"name":"good"}}}`, code: 201},
		{do: "POST etcdrestores", body: `{"metadata":{"name":"y"},"spec":{"etcdCluster":{"name":"new"},"backup":{"name":"good"},"clusterTemplate":{"spec":{"size":3}}}}`, code: 403, says: "create etcdclusters"},
		{do: "POST etcdrestores", body: `{"metadata":{"name":"y"},"spec":{"etcdCluster":{"name":"owned"},"backup":{"name":"good"},"decryption":{"ageIdentitiesSecret":"store"}}}`, code: 403, says: "spec.decryption.ageIdentitiesSecret"},
		{do: "POST etcdrestores", body: `{"metadata":{"name":"y"},"spec":{"etcdCluster":{"name":"owned"},"backup":{"name":"good"},"serviceAccountName":"mover"}}`, code: 403, says: "spec.serviceAccountName"},
		{do: "POST etcdrestores", body: `{"metadata":{"name":"y"},"spec":{"etcdCluster":{"name":"owned"},"backup":{"name":"good"},"job":{"env":[{"name":"HTTP_PROXY","value":"http://x:1"}]}}}`, code: 422, says: "spec.job.env"},
		{do: "POST etcdrestores", body: `{"metadata":{"name":"y"},"spec":{"etcdCluster":{"name":"owned"},"backup":{"name":"good"},"job":{"annotations":{"a":"b"}}}}`, code: 422, says: "spec.job.annotations"},
		{do: "POST etcdrestores", body: `{"metadata":{"name":"y"},"spec":{"etcdCluster":{"name":"owned"},"backupStorageType":"PersistentVolumeClaim","persistentVolumeClaim":{"claimName":"mine"}}}`, code: 403, says: "create etcdbackups"},
		{do: "POST etcdclusters/owned/restore", body: "{}", code: 403},
	}},
	{"create-restores-elsewhere", rules(ofGroup("create", "etcdrestores", "etcdbackups")), []try{
		{do: "POST etcdrestores", body: `{"metadata":{"name":"x"},"spec":{"etcdCluster":{"name":"owned"},"backupStorageType":"PersistentVolumeClaim","persistentVolumeClaim":{"claimName":"mine"}}}`, code: 201},
	}},
}
