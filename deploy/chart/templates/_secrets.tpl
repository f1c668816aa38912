{{- /* Secrets: names by value, or those that the Job of `secrets.generate` makes. None is read or made while rendering. */ -}}

{{- /* The Secrets of settings as JSON: a list of `setting`, `name` and `key`. */ -}}
{{- define "roost.secretSettings" -}}
{{- $found := list -}}
{{- $made := dict "kek" "keys" "metricsToken" "keys" "databaseUrl" "database" -}}
{{- range $id, $secret := omit .Values.secrets "generate" -}}
{{- $name := $secret.name -}}
{{- if and (not $name) $.Values.secrets.generate (hasKey $made $id) -}}
{{- $name = printf "%s-%s" (include "roost.fullname" $) (get $made $id) -}}
{{- end -}}
{{- if $name -}}
{{- $found = append $found (dict "setting" (snakecase $id) "name" $name "key" $secret.key) -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{- /* The volume with all of them, each a file named as its setting. */ -}}
{{- define "roost.secretVolume" -}}
name: secrets
projected:
  defaultMode: 0440
  sources:
    {{- range include "roost.secretSettings" . | fromJsonArray }}
    - secret:
        name: {{ .name }}
        items: [{key: {{ .key | quote }}, path: {{ .setting }}}]
    {{- end }}
{{- end }}

{{- define "roost.bucketSecret" -}}
{{- if .Values.bucket.credentials -}}
{{- .Values.bucket.credentials -}}
{{- else if and .Values.secrets.generate .Values.s3.enabled -}}
{{- include "roost.fullname" . }}-bucket
{{- end -}}
{{- end }}

{{- define "roost.databasePassword" -}}
{{- $default := ternary (printf "%s-database" (include "roost.fullname" .)) "" .Values.secrets.generate -}}
{{- required "postgresql.password.name: names the Secret with the password, or set secrets.generate" (default $default .Values.postgresql.password.name) -}}
{{- end }}
