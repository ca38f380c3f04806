{{/* name of the PVC for backups */}}
{{- define "etcd-cluster.backupVolume" -}}
{{ .Release.Name }}-backups
{{- end }}

{{/* spec.backup of the EtcdCluster: the value backup without volume. With a volume it names the PVC. */}}
{{- define "etcd-cluster.backup" -}}
{{- $backup := omit (.Values.backup | default dict) "volume" -}}
{{- if ((.Values.backup).volume).size -}}
{{- if ne ($backup.storageType | default "PersistentVolumeClaim") "PersistentVolumeClaim" -}}
{{- fail (printf "backup.volume.size is set and backup.storageType is %s: a backup has one location. Set one of the two" $backup.storageType) -}}
{{- end -}}
{{- $pvc := $backup.persistentVolumeClaim | default dict -}}
{{- if $pvc.claimName -}}
{{- fail "backup.volume.size and backup.persistentVolumeClaim.claimName are set: the first one creates a PVC, the second one names a PVC that exists. Set one of the two" -}}
{{- end -}}
{{- $pvc = merge (dict "claimName" (include "etcd-cluster.backupVolume" .)) $pvc (dict "path" "etcd") -}}
{{- $backup = merge (dict "storageType" "PersistentVolumeClaim" "persistentVolumeClaim" $pvc) $backup -}}
{{- else if and $backup (not $backup.storageType) -}}
{{- fail "backup.storageType is empty: backups need a location. Set backup.storageType and the location, or backup.volume.size" -}}
{{- end -}}
{{- $backup | toYaml -}}
{{- end }}

{{/* spec of the EtcdCluster: the named values, and then the fields of the value spec. */}}
{{- define "etcd-cluster.spec" -}}
{{- $values := .Values -}}
{{- $spec := dict "size" (int $values.size) -}}
{{- with $values.version }}{{ $_ := set $spec "version" . }}{{ end -}}
{{- /* false is written, too: the API server keeps the protection when the field is left out. */ -}}
{{- $_ := set $spec "deletionProtection" $values.deletionProtection -}}
{{- with $values.tls }}{{ $_ := set $spec "TLS" . }}{{ end -}}
{{- with $values.clients }}{{ $_ := set $spec "clients" . }}{{ end -}}
{{- with include "etcd-cluster.backup" . | fromYaml }}{{ $_ := set $spec "backup" . }}{{ end -}}
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
