{{- /* Security contexts that pod security `restricted` accepts. On OpenShift the namespace gives users and groups. */ -}}

{{- /* Call with `root`, `user` and optionally `extra`. */ -}}
{{- define "roost.podSecurityContext" -}}
{{- $context := dict "runAsNonRoot" true "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- if not .root.Values.openshift -}}
{{- $_ := mergeOverwrite $context (dict "runAsUser" .user "fsGroup" .user "fsGroupChangePolicy" "OnRootMismatch") -}}
{{- end -}}
{{- toYaml (mergeOverwrite $context (default dict .extra)) -}}
{{- end }}

{{- define "roost.securityContext" -}}
{{- $context := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true -}}
{{- $_ := set $context "capabilities" (dict "drop" (list "ALL")) -}}
{{- toYaml (mergeOverwrite $context (default dict .)) -}}
{{- end }}

{{- /* Annotations that keep an object when the release or the application is removed: agents do not belong to it. */ -}}
{{- define "roost.keptAnnotations" -}}
helm.sh/resource-policy: keep
argocd.argoproj.io/sync-options: Prune=false,Delete=false
{{- end }}
