{{- define "roost.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{- /* 40 characters, because names of objects add to it, and a name of a Service has at most 63. */ -}}
{{- define "roost.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "roost.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "roost.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "roost.selectorLabels" -}}
app.kubernetes.io/name: {{ include "roost.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Labels of agents' pods, by which network policies select them. The runtime gives them to each pod. */ -}}
{{- define "roost.agentLabels" -}}
app.kubernetes.io/name: roost-agent
{{- end }}

{{- /* Call with `root`, and optionally `name` (a suffix) or `fullname`, `namespace`, `component`, `annotations`, `labels`. */ -}}
{{- define "roost.metadata" -}}
{{- $root := .root -}}
name: {{ if .fullname }}{{ .fullname }}{{ else }}{{ include "roost.fullname" $root }}{{ with .name }}-{{ . }}{{ end }}{{ end }}
namespace: {{ default $root.Release.Namespace .namespace }}
labels:
  {{- include "roost.selectorLabels" $root | nindent 2 }}
  app.kubernetes.io/component: {{ default "server" .component }}
  app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
  app.kubernetes.io/part-of: roost
  app.kubernetes.io/managed-by: {{ $root.Release.Service }}
  helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
  {{- with merge (deepCopy (default dict .labels)) $root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (deepCopy (default dict .annotations)) $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "roost.agentNamespace" -}}
{{- default .Release.Namespace .Values.agents.namespace -}}
{{- end }}

{{- define "roost.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "roost.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "roost.image" -}}
{{- $image := .Values.image -}}
{{- with .Values.imageRegistry -}}{{ trimSuffix "/" . }}/{{- end -}}
{{- $image.repository -}}
{{- if $image.digest -}}@{{ $image.digest }}{{- else -}}:{{ default .Chart.AppVersion $image.tag }}{{- end -}}
{{- end }}

{{- /* All host names below the domain, one a line. */ -}}
{{- define "roost.hosts" -}}
{{- $domain := .Values.domain -}}
{{- range list "" "agents." "*.agents." "api." "uploads." "*.gateways." }}
- {{ printf "%s%s" . $domain | quote }}
{{- end }}
{{- range .Values.extraHosts }}
- {{ quote . }}
{{- end }}
{{- end }}

{{- define "roost.pullSecrets" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}
