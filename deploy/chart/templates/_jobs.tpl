{{- /* A pod of a Job: call with `root`, `name`, `container` (its own fields, as YAML), `volumes` (as YAML), `account`. */ -}}
{{- define "roost.jobPod" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "roost.selectorLabels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .name }}
spec:
  restartPolicy: Never
  {{- with .account }}
  serviceAccountName: {{ . }}
  {{- end }}
  automountServiceAccountToken: {{ if .account }}true{{ else }}false{{ end }}
  enableServiceLinks: false # a Service named `roost` would set ROOST_PORT, a setting
  {{- with include "roost.pullSecrets" $root | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with $root.Values.server.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $root.Values.server.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "roost.podSecurityContext" (dict "root" $root "user" 1000) | nindent 4 }}
  containers:
    - name: {{ .name }}
      image: {{ include "roost.image" $root | quote }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      {{- .container | nindent 6 }}
      securityContext:
        {{- include "roost.securityContext" dict | nindent 8 }}
  volumes:
    {{- .volumes | nindent 4 }}
{{- end }}

{{- /* Hooks of Helm, which Argo CD ignores because there are some of its own. Call with `helm`, `argocd` and `weight`. */ -}}
{{- define "roost.hook" -}}
helm.sh/hook: {{ .helm }}
helm.sh/hook-weight: {{ .weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation{{ if .removed }},hook-succeeded{{ end }}
argocd.argoproj.io/hook: {{ .argocd }}
argocd.argoproj.io/sync-wave: {{ .weight | quote }}
argocd.argoproj.io/hook-delete-policy: BeforeHookCreation{{ if .removed }},HookSucceeded{{ end }}
{{- end }}
