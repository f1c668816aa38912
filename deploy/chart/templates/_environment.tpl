{{- /* The environment of the servers. Names with ROOST_ are settings (docs/reference/settings.md). */ -}}

{{- /* The settings of the Kubernetes runtime, all of them here. */ -}}
{{- define "roost.runtimeEnvironment" -}}
{{- $agents := .Values.agents -}}
{{- $repository := default (trimSuffix "/" .Values.imageRegistry) $agents.imageRepository -}}
- {name: ROOST_RUNTIME, value: kubernetes}
- {name: ROOST_SANDBOX, value: landlock} # pods of the level `restricted` may make no namespaces
- {name: ROOST_GIT_STORAGE, value: blobs} # the disk of a server ends with its pod
- {name: ROOST_KUBERNETES_NAMESPACE, value: {{ include "roost.agentNamespace" . | quote }}}
{{- $servers := set (include "roost.selectorLabels" . | fromYaml) "app.kubernetes.io/component" "server" }}
{{- range $name, $value := dict
  "NAME" (include "roost.fullname" .)
  "SERVER_LABELS" (toJson $servers)
  "SERVER_NAMESPACE" (ternary .Release.Namespace "" (ne .Release.Namespace (include "roost.agentNamespace" .)))
  "USER" (ternary "none" "" .Values.openshift)
  "IMAGE_REPOSITORY" $repository
  "IMAGE_PULL_SECRETS" (join "," $agents.imagePullSecrets)
  "STORAGE_CLASS" $agents.storageClass
  "STORAGE_SIZE" $agents.storageSize
  "RUNTIME_CLASS" $agents.runtimeClassName
  "NODE_SELECTOR" (ternary (toJson $agents.nodeSelector) "" (gt (len $agents.nodeSelector) 0))
  "TOLERATIONS" (ternary (toJson $agents.tolerations) "" (gt (len $agents.tolerations) 0))
  "PRIORITY_CLASS" $agents.priorityClassName
  "ACCEPT_OPEN_NETWORK" (ternary "true" "" $agents.acceptOpenNetwork)
}}
{{- if $value }}
- name: ROOST_KUBERNETES_{{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "roost.secretEnvironment" -}}
{{- range include "roost.secretSettings" . | fromJsonArray }}
- {name: ROOST_{{ upper .setting }}_FILE, value: /run/secrets/roost/{{ .setting }}}
{{- end }}
{{- end }}

{{- /* The data folder is below the volume, because the server sets its mode, and volumes belong to root. */ -}}
{{- define "roost.folderEnvironment" -}}
- {name: ROOST_DATA, value: /data/roost}
- {name: ROOST_ENGINES, value: /data/engines}
- {name: HOME, value: /data}
{{- end }}

{{- define "roost.bucketEnvironment" -}}
{{- $bucket := .Values.bucket -}}
{{- $isBundled := .Values.s3.enabled -}}
{{- $endpoint := printf "http://%s-s3:%v" (include "roost.fullname" .) .Values.s3.port -}}
- {name: ROOST_BLOBS, value: {{ default "s3://roost" $bucket.url | quote }}}
{{- with default (ternary $endpoint "" $isBundled) $bucket.endpoint }}
- {name: AWS_ENDPOINT_URL, value: {{ quote . }}}
{{- end }}
{{- with default (ternary "us-east-1" "" $isBundled) $bucket.region }}
- {name: AWS_REGION, value: {{ quote . }}}
{{- end }}
{{- if or $bucket.allowHttp $isBundled }}
- {name: AWS_ALLOW_HTTP, value: "true"}
{{- end }}
{{- end }}

{{- define "roost.proxyEnvironment" -}}
{{- $proxy := .Values.proxy -}}
{{- range $name, $value := dict "HTTP_PROXY" $proxy.http "HTTPS_PROXY" $proxy.https }}
{{- if $value }}
- {name: {{ $name }}, value: {{ quote $value }}}
{{- end }}
{{- end }}
{{- if or $proxy.http $proxy.https }}
{{- $own := list "localhost" "127.0.0.1" "$(KUBERNETES_SERVICE_HOST)" ".svc" ".cluster.local" (printf "%s-s3" (include "roost.fullname" .)) }}
- {name: NO_PROXY, value: {{ join "," (concat $own $proxy.exclude) | quote }}}
{{- end }}
{{- with .Values.caBundle.configMap }}
- {name: SSL_CERT_FILE, value: /run/ca/bundle.pem}
- {name: ROOST_CA_FILE, value: /run/ca/bundle.pem}
{{- end }}
{{- end }}

{{- define "roost.serverEnvironment" -}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
{{ include "roost.folderEnvironment" . }}
- {name: ROOST_HOST, value: {{ ternary "::" "0.0.0.0" (eq .Values.ipFamily "IPv6") | quote }}}
- {name: ROOST_PORT, value: "8642"}
- {name: ROOST_PEER_ADDRESS, value: {{ ternary "[$(POD_IP)]:8643" "$(POD_IP):8643" (eq .Values.ipFamily "IPv6") | quote }}}
- {name: ROOST_DOMAIN, value: {{ .Values.domain | quote }}}
- {name: ROOST_PUBLIC_SCHEME, value: {{ .Values.publicScheme }}}
- {name: ROOST_PUBLIC_PORT, value: {{ .Values.publicPort | quote }}}
{{- if eq .Values.publicScheme "http" }}
- {name: ROOST_ALLOW_PLAIN_HTTP, value: "true"}
{{- end }}
{{- with .Values.trustedProxies }}
- {name: ROOST_TRUSTED_PROXIES, value: {{ join "," . | quote }}}
{{- end }}
- {name: ROOST_LOG_LEVEL, value: {{ .Values.server.logLevel }}}
- {name: ROOST_KEEP_AGENTS_ON_STOP, value: "true"} # an upgrade of the servers does not touch agents
{{ include "roost.runtimeEnvironment" . }}
{{ include "roost.bucketEnvironment" . }}
{{- include "roost.secretEnvironment" . }}
{{- include "roost.proxyEnvironment" . }}
{{- range $setting, $value := .Values.settings }}
- {name: ROOST_{{ upper $setting }}, value: {{ $value | quote }}}
{{- end }}
{{- with .Values.server.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
