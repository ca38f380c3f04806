{{/* The image of the programs. The chart of a release has the digest of the image of that release, which is not for another tag. */}}
{{- define "etcd-operator.image" -}}
{{- $image := .Values.image -}}
{{- $released := index .Chart.Annotations "etcd.database.coreos.com/image-digest" -}}
{{- $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}{{ with $image.digest | default (ternary "" $released (ne $image.tag "")) }}@{{ . }}{{ end }}
{{- end }}

{{/* Labels of the user, at the indentation of labels in metadata of an object. */}}
{{- define "etcd-operator.commonLabels" -}}
{{- with .Values.commonLabels }}{{ toYaml . | nindent 4 }}{{ end }}
{{- end }}

{{/* The same for an object without other labels. */}}
{{- define "etcd-operator.onlyCommonLabels" -}}
{{- with .Values.commonLabels }}{{ dict "labels" . | toYaml | nindent 2 }}{{ end }}
{{- end }}

{{/* Default variables whose names are not in extraEnv, and then extraEnv. */}}
{{- define "etcd-operator.env" -}}
{{- $names := list -}}
{{- range .extra }}{{ $names = append $names .name }}{{ end -}}
{{- $env := list -}}
{{- range .defaults }}{{ if not (has .name $names) }}{{ $env = append $env . }}{{ end }}{{ end -}}
{{- concat $env .extra | toYaml }}
{{- end }}

{{/* Where pods run, at the indentation of a pod's spec: values of the program, and whether others stand by for a pod on a
node that is lost, which is replaced after half a minute then. */}}
{{- define "etcd-operator.placement" -}}
{{- $tolerations := list -}}
{{- if .standby -}}
{{- range list "not-ready" "unreachable" }}
{{- $tolerations = append $tolerations (dict "key" (printf "node.kubernetes.io/%s" .) "operator" "Exists" "effect" "NoExecute" "tolerationSeconds" 30) }}
{{- end -}}
{{- end -}}
{{- $placement := dict -}}
{{- with .values.nodeSelector }}{{ $_ := set $placement "nodeSelector" . }}{{ end -}}
{{- with concat $tolerations .values.tolerations }}{{ $_ := set $placement "tolerations" . }}{{ end -}}
{{- with .values.affinity }}{{ $_ := set $placement "affinity" . }}{{ end -}}
{{- with $placement }}{{ toYaml . | nindent 6 }}{{ end }}
{{- end }}

{{/* Labels of the user for a pod, at the indentation of a pod template. */}}
{{- define "etcd-operator.podLabels" -}}
{{- with merge dict .values.podLabels .root.Values.commonLabels }}{{ toYaml . | nindent 8 }}{{ end }}
{{- end }}

{{/* The API group is served here, so custom resource definitions of the group must not exist. */}}
{{- define "etcd-operator.rejectCRDs" -}}
{{- $group := "etcd.database.coreos.com" -}}
{{- $found := list -}}
{{- range (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "").items -}}
{{- if eq .spec.group $group }}{{ $found = append $found .metadata.name }}{{ end -}}
{{- end -}}
{{- if $found }}
{{- printf "CustomResourceDefinitions of the API group %s exist: %s. The chart serves this group with an API server of its own; with both, garbage collection can delete pods of the clusters that another operator runs. Move these clusters with kubectl etcd migrate operator, which also deletes the CustomResourceDefinitions, then install again: docs/how-to/migrate.md" $group (sortAlpha $found | join ", ") | fail }}
{{- end }}
{{- end }}

{{/* Values that contradict each other. */}}
{{- define "etcd-operator.rejectContradictions" -}}
{{- $server := .Values.apiserver -}}
{{- $external := eq $server.storage.type "external" -}}
{{- if and (eq $server.storage.type "embedded") (gt (int $server.replicas) 1) }}
{{- printf "apiserver.replicas is %d and apiserver.storage.type is embedded: only one process can open the embedded storage. Set apiserver.replicas to 1, or apiserver.storage.type to managed or external" (int $server.replicas) | fail }}
{{- end }}
{{- if and $external (not $server.storage.external.servers) }}
{{- fail "apiserver.storage.external.servers is empty and apiserver.storage.type is external: the API server needs an etcd. Name the client URLs of an etcd that etcd-operator does not manage" }}
{{- end }}
{{- if and $external .Values.networkPolicy.enabled (not .Values.networkPolicy.apiserverEgress) }}
{{- fail "networkPolicy.apiserverEgress is empty, networkPolicy.enabled is true and apiserver.storage.type is external: the policies would cut the API server off from its etcd. Name an egress rule to the addresses of that etcd" }}
{{- end }}
{{- if and .Values.controller.watchNamespace .Values.controller.clusterWide }}
{{- fail "controller.watchNamespace and controller.clusterWide are both set: a controller looks after one namespace or after all. Set one of them" }}
{{- end }}
{{- $watched := .Values.controller.watchNamespace -}}
{{- $kept := get $server.storage $server.storage.type -}}
{{- if and $watched (ne $watched .Release.Namespace) (not $external) $kept.backup.enabled }}
{{- printf "controller.watchNamespace is %s, and apiserver.storage.%s.backup.enabled is true: no controller would make the backups of the objects, which are in namespace %s. Set backup.enabled to false and back the objects up yourself, or watch namespace %s or all namespaces" $watched $server.storage.type .Release.Namespace .Release.Namespace | fail }}
{{- end }}
{{- $serving := $server.servingCertificate -}}
{{- $injected := keys .Values.apiService.annotations | join "," | contains "cert-manager.io/inject-" -}}
{{- /* Former API servers write their own CA until they end, so something must write the new CA again. */}}
{{- if and $serving.secretName (not (or $serving.issuerRef $injected)) }}
{{- fail "apiserver.servingCertificate.secretName is set and nothing writes the CA of that certificate into the APIService: the kube-apiserver would not trust the API server. Set issuerRef, too, or give apiService.annotations the annotation cert-manager.io/inject-ca-from-secret" }}
{{- end }}
{{- end }}

{{/* The Secret with the certificate of the API server; empty if the server issues its own. */}}
{{- define "etcd-operator.servingSecret" -}}
{{- with .Values.apiserver.servingCertificate -}}
{{- if .secretName }}{{ .secretName }}{{ else if .issuerRef }}etcd-operator-apiserver-serving{{ end -}}
{{- end -}}
{{- end }}

{{/* Where API servers that are installed keep the objects: embedded, managed, external, or nothing. */}}
{{- define "etcd-operator.storageInUse" -}}
{{- $deployment := lookup "apps/v1" "Deployment" .Release.Namespace "etcd-operator-apiserver" -}}
{{- $addresses := lookup "v1" "ConfigMap" .Release.Namespace "etcd-operator-apiserver-storage" -}}
{{- $embedded := false -}}
{{- if $deployment }}
{{- range (first $deployment.spec.template.spec.containers).args }}
{{- if hasPrefix "--embedded-etcd-dir=" . }}{{ $embedded = true }}{{ end }}
{{- end }}
{{- if $embedded }}embedded
{{- else if contains "//etcd-operator-storage-0." (dig "data" "servers" "" $addresses) }}managed
{{- else }}external
{{- end }}
{{- end }}
{{- end }}

{{/* Another storage than the one that has the objects: API servers would not find them. */}}
{{- define "etcd-operator.rejectOtherStorage" -}}
{{- $type := .Values.apiserver.storage.type -}}
{{- $used := include "etcd-operator.storageInUse" . | trim -}}
{{- $move := "move the objects first: docs/how-to/high-availability.md#move-a-release-of-helm" -}}
{{- if and $used (ne $used $type) }}
{{- printf "apiserver.storage.type is %s, and the API servers in namespace %s keep the objects in %s storage: with another type they would not find them. Set apiserver.storage.type to %s (helm upgrade with one value forgets the values of before, unless --reset-then-reuse-values is given), or %s" $type .Release.Namespace $used $used $move | fail }}
{{- end }}
{{- $volumes := dict "embedded" "etcd-operator-apiserver-data" "managed" "data-etcd-operator-storage-0" -}}
{{- $other := ternary "managed" "embedded" (eq $type "embedded") -}}
{{- $needed := get $volumes $type -}}
{{- $left := get $volumes $other -}}
{{- if and (not $used) $needed (not (lookup "v1" "PersistentVolumeClaim" .Release.Namespace $needed)) (lookup "v1" "PersistentVolumeClaim" .Release.Namespace $left) }}
{{- printf "apiserver.storage.type is %s, and PVC %s of an installation with type %s exists in namespace %s: the API servers would not find the objects that it holds. Set apiserver.storage.type to %s. To change the type, %s. If no object is needed, delete the PVC" $type $left $other .Release.Namespace $other $move | fail }}
{{- end }}
{{- end }}
