{{- /* What the schema of the values cannot say: values that need each other. */ -}}

{{- define "roost.checkValues" -}}
{{- $settings := dict -}}
{{- range include "roost.secretSettings" . | fromJsonArray -}}{{- $_ := set $settings .setting true -}}{{- end -}}
{{- range $setting, $id := dict "kek" "kek" "database_url" "databaseUrl" -}}
{{- if not (hasKey $settings $setting) -}}
{{- fail (printf "secrets.%s.name: names a Secret, or set secrets.generate" $id) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.secrets.generate (not .Values.secrets.databaseUrl.name) (not .Values.postgresql.enabled) -}}
{{- fail "secrets.databaseUrl.name: names a Secret; only that of postgresql.enabled can be generated" -}}
{{- end -}}
{{- if and .Values.secrets.generate .Values.secrets.databaseUrl.name .Values.postgresql.enabled (not .Values.postgresql.password.name) -}}
{{- fail "postgresql.password.name: names a Secret, too, if secrets.databaseUrl.name does" -}}
{{- end -}}
{{- if and (not .Values.bucket.url) (not .Values.s3.enabled) -}}
{{- fail "bucket.url: names a bucket, or set s3.enabled" -}}
{{- end -}}
{{- if and .Values.s3.enabled (not (include "roost.bucketSecret" .)) -}}
{{- fail "bucket.credentials: names the Secret with the credentials of s3, or set secrets.generate" -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (not (hasKey $settings "metrics_token")) -}}
{{- fail "secrets.metricsToken.name: is needed by serviceMonitor.enabled" -}}
{{- end -}}
{{- if and .Values.autoscaling.enabled (not .Values.autoscaling.cpuPercent) (not .Values.autoscaling.metrics) -}}
{{- fail "autoscaling: needs cpuPercent or metrics" -}}
{{- end -}}
{{- if lt (int .Values.server.stopSeconds) (add .Values.server.drainSeconds 30 | int) -}}
{{- fail "server.stopSeconds: must be at least 30 more than server.drainSeconds, for a server to hand its agents over and end" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- fail "httpRoute.parentRefs: names at least one Gateway" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (gt (len .Values.extraHosts) 10) -}}
{{- fail "extraHosts: at most 10 with httpRoute.enabled, because an HTTPRoute has at most 16 names; make another one for more" -}}
{{- end -}}
{{- if and .Values.agents.createNamespace (eq (include "roost.agentNamespace" .) .Release.Namespace) -}}
{{- fail "agents.createNamespace: needs another agents.namespace than that of the release" -}}
{{- end -}}
{{- if and .Values.agents.pullAhead.enabled (not .Values.agents.pullAhead.images) -}}
{{- fail "agents.pullAhead.images: names at least one image" -}}
{{- end -}}
{{- end }}
