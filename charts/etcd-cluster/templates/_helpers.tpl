{{/* spec of the EtcdCluster: the named values, and then the fields of the value spec. */}}
{{- define "etcd-cluster.spec" -}}
{{- $values := .Values -}}
{{- $spec := dict "size" (int $values.size) -}}
{{- with $values.version }}{{ $_ := set $spec "version" . }}{{ end -}}
{{- if $values.deletionProtection }}{{ $_ := set $spec "deletionProtection" true }}{{ end -}}
{{- with $values.tls }}{{ $_ := set $spec "TLS" . }}{{ end -}}
{{- with $values.clients }}{{ $_ := set $spec "clients" . }}{{ end -}}
{{- with $values.backup }}{{ $_ := set $spec "backup" . }}{{ end -}}
{{- $pod := dict -}}
{{- with $values.resources }}{{ $_ := set $pod "resources" . }}{{ end -}}
{{- if $values.storage.size -}}
{{- $pvc := dict "accessModes" (list "ReadWriteOnce") "resources" (dict "requests" (dict "storage" $values.storage.size)) -}}
{{- with $values.storage.storageClassName }}{{ $_ := set $pvc "storageClassName" . }}{{ end -}}
{{- $_ := set $pod "persistentVolumeClaimSpec" $pvc -}}
{{- $_ := set $pod "persistentVolumeClaimRetentionPolicy" (dict "whenDeleted" $values.storage.whenDeleted) -}}
{{- end -}}
{{- if $pod }}{{ $_ := set $spec "pod" $pod }}{{ end -}}
{{- mergeOverwrite (deepCopy $spec) (deepCopy $values.spec) | toYaml }}
{{- end }}
