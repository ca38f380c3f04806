// Copyright The etcd-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/xml"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/etcd-operator/etcd-operator/pkg/agent"
	"github.com/etcd-operator/etcd-operator/pkg/apis/etcd/v1beta2"
	"github.com/etcd-operator/etcd-operator/pkg/resources"
	"github.com/etcd-operator/etcd-operator/test/harness"
)

const (
	// roleAnnotation is the annotation that users of AWS put on a service account, and
	// webAudience the audience of its tokens.
	roleAnnotation = "eks.amazonaws.com/role-arn"
	webAudience    = "sts.amazonaws.com"
	backupRole     = "arn:aws:iam::1:role/backups"
	tokenVariable  = "AWS_WEB_IDENTITY_TOKEN_FILE"
)

// identityPolicy changes the pods of the annotated service account as the webhook of AWS
// does. It mounts a token for AWS into each container that is not left out, and sets
// variables with its path. The last variable is for this test: it sends the requests to the
// test and not to AWS.
const identityPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  paramKind: {apiVersion: v1, kind: ServiceAccount}
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  matchConditions:
  - {name: account, expression: "has(object.spec.serviceAccountName) && object.spec.serviceAccountName == 'backups'"}
  variables:
  - name: skipped
    expression: >-
      has(object.metadata.annotations) && 'eks.amazonaws.com/skip-containers' in object.metadata.annotations ?
      object.metadata.annotations['eks.amazonaws.com/skip-containers'].split(',') : []
  - name: role
    expression: "params.metadata.annotations['eks.amazonaws.com/role-arn']"
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "add", path: "/spec/volumes/-", value: Object.spec.volumes{name: "aws-iam-token",
        projected: Object.spec.volumes.projected{defaultMode: 420, sources: [Object.spec.volumes.projected.sources{
        serviceAccountToken: Object.spec.volumes.projected.sources.serviceAccountToken{
        audience: "sts.amazonaws.com", expirationSeconds: 86400, path: "token"}}]}}}]
%[2]s%[3]s---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec:
  policyName: %[1]s
  paramRef: {name: backups, parameterNotFoundAction: Deny}
  matchResources:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
`

// identityOf gives the token to one of the lists of containers of a pod.
const identityOf = `  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{spec: Object.spec{%[1]s: (has(object.spec.%[1]s) ? object.spec.%[1]s : []).filter(c, !(c.name in variables.skipped)).map(c,
        Object.spec.%[1]s{name: c.name, env: [
        Object.spec.%[1]s.env{name: "AWS_REGION", value: "us-east-1"},
        Object.spec.%[1]s.env{name: "AWS_ROLE_ARN", value: variables.role},
        Object.spec.%[1]s.env{name: "AWS_WEB_IDENTITY_TOKEN_FILE", value: "/var/run/secrets/eks.amazonaws.com/serviceaccount/token"},
        Object.spec.%[1]s.env{name: "AWS_ENDPOINT_URL_STS", value: "%[2]s"}],
        volumeMounts: [Object.spec.%[1]s.volumeMounts{name: "aws-iam-token", readOnly: true,
        mountPath: "/var/run/secrets/eks.amazonaws.com/serviceaccount"}]})}}
`

// tokenExchange stands in for the service of AWS that gives keys for tokens. It asks the
// cluster whose token it is.
type tokenExchange struct {
	s   *scenario
	url string

	mu sync.Mutex
	// rejects makes it issue no keys.
	rejects bool
	// given counts the keys, wrong are the requests that it did not expect.
	given int
	wrong []string
}

// exchange runs it on this machine, at the address that pods see it by.
func (s *scenario) exchange(podIP string) *tokenExchange {
	s.Helper()
	route, err := new(net.Dialer).DialContext(s.ctx(), "udp", net.JoinHostPort(podIP, "9")) // nothing is sent
	s.must(err, "find the way to pods")
	here, _, err := net.SplitHostPort(route.LocalAddr().String())
	s.must(err, "read the address of this machine")
	s.must(route.Close(), "close")
	listener, err := new(net.ListenConfig).Listen(s.ctx(), "tcp", net.JoinHostPort(here, "0"))
	s.must(err, "listen")
	e := &tokenExchange{s: s, url: "http://" + listener.Addr().String()}
	server := &http.Server{Handler: e, ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	s.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
	})
	return e
}

// ServeHTTP implements http.Handler.
func (e *tokenExchange) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	user, err := e.userOf(r)
	if err != nil || user != "system:serviceaccount:"+e.s.namespace+":backups" {
		e.wrong = append(e.wrong, fmt.Sprintf("%s: %v", user, err))
	}
	if err != nil || e.rejects {
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprint(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code>`+
			`<Message>Not authorized to perform sts:AssumeRoleWithWebIdentity</Message></Error></ErrorResponse>`)
		return
	}
	e.given++
	type credentials struct {
		AccessKeyID     string `xml:"AccessKeyId"`
		SecretAccessKey string
		Expiration      string
	}
	// The response has no session token, unlike that of AWS: this server rejects session
	// tokens.
	response := struct {
		XMLName     xml.Name    `xml:"https://sts.amazonaws.com/doc/2011-06-15/ AssumeRoleWithWebIdentityResponse"`
		Credentials credentials `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
	}{Credentials: credentials{"admin", canary, time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}}
	_ = xml.NewEncoder(w).Encode(response)
}

// userOf returns whose token a request shows.
func (e *tokenExchange) userOf(r *http.Request) (string, error) {
	if err := r.ParseForm(); err != nil {
		return "", err
	}
	if action, role := r.Form.Get("Action"), r.Form.Get("RoleArn"); action != "AssumeRoleWithWebIdentity" || role != backupRole {
		return "", fmt.Errorf("it asks for %q as %q", action, role)
	}
	review, err := env.Kube.AuthenticationV1().TokenReviews().Create(r.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: r.Form.Get("WebIdentityToken"), Audiences: []string{webAudience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	if !review.Status.Authenticated || !slices.Contains(review.Status.Audiences, webAudience) {
		return "", fmt.Errorf("the token is not good: %s", review.Status.Error)
	}
	return review.Status.User.Username, nil
}

func (e *tokenExchange) reject(yes bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rejects = yes
}

// identify gives the service account "backups" its role, and waits until its pods are given
// tokens for that.
func (s *scenario) identify(e *tokenExchange) {
	s.Helper()
	s.kubectl("create", "serviceaccount", "backups")
	s.kubectl("annotate", "serviceaccount", "backups", roleAnnotation+"="+backupRole)
	probe := s.probePod(nil)
	probe.Spec.ServiceAccountName, probe.Spec.AutomountServiceAccountToken = "backups", new(bool)
	probe.Spec.Volumes = []corev1.Volume{{Name: "x", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	s.mutatePods(probe, func(p *corev1.Pod) bool { return isIdentified(&p.Spec.Containers[0]) }, identityPolicy,
		fmt.Sprintf(identityOf, "containers", e.url), fmt.Sprintf(identityOf, "initContainers", e.url))
}

// isIdentified is true for a container that has the path of its token, and can read it.
func isIdentified(c *corev1.Container) bool {
	return slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == tokenVariable }) &&
		slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "aws-iam-token" })
}

// TestIdentityOfTheWorkload backs up and restores without a Secret, as users of AWS do: the
// service account has a role, the pods get a token for it, and that is exchanged for keys.
func TestIdentityOfTheWorkload(t *testing.T) {
	env.RequireLocal(t, harness.ObjectStore)
	t.Parallel()
	s := start(t)
	store := s.s3()
	s.kubectl("delete", "secret", "aws", "aws-wrong", "store", "store-wrong")
	c := s.create("known", 1, etcdVersion)
	data := c.fill()
	sts := s.exchange(c.members.Live()[0].Status.PodIP)
	s.identify(sts)

	sts.reject(true)
	s.apply(backupManifest("trusted", `  etcdCluster: {name: known}
  serviceAccountName: backups
  storageType: S3
  s3: {path: backups/trusted, endpoint: "http://store:7070", forcePathStyle: true}`))
	s.awaitBackup(s.ctx(), "trusted", "a refusal", func(b *v1beta2.EtcdBackup) bool { return reasonOf(b) == string(agent.ClassStoreDenied) })
	sts.reject(false)
	backup := s.awaitBackup(s.ctx(), "trusted", "success", hasSucceeded)
	s.hasSnapshot(store.fetch(backup.Status.URI), data)

	c.spoil(data)
	recoveryMember := s.recoveryMember("known")
	s.apply(restoreManifest("back", "known", "  backup: {name: trusted}"))
	if r := s.restored("back"); r.Status.PreRestoreBackup == nil || !strings.HasPrefix(r.Status.PreRestoreBackup.URI, "s3://backups/trusted-pre-restore/") {
		t.Errorf("the pre-restore backup is %+v", r.Status.PreRestoreBackup)
	}
	c.settle(1)
	c.holds(data)
	c.holdsNothingOf("backups")
	seed := recoveryMember()
	if seed.Spec.ServiceAccountName != "backups" || *seed.Spec.AutomountServiceAccountToken {
		t.Errorf("the new member is %q", seed.Spec.ServiceAccountName)
	}
	for i := range seed.Spec.InitContainers {
		if ctr := &seed.Spec.InitContainers[i]; isIdentified(ctr) != (ctr.Name == resources.InitFetch) {
			t.Errorf("container %s has a token: %t", ctr.Name, isIdentified(ctr))
		}
	}
	if isIdentified(&seed.Spec.Containers[0]) {
		t.Error("etcd has a token")
	}
	sts.mu.Lock()
	defer sts.mu.Unlock()
	// For the backup, for the look at it, for the pre-restore backup, and for the new member.
	if len(sts.wrong) > 0 || sts.given < 4 {
		t.Errorf("keys were given %d times; unexpected: %v", sts.given, sts.wrong)
	}
	s.noCanary()
}
