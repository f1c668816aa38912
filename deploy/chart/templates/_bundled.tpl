{{- /* PostgreSQL and S3 for trying: one pod each, with a volume. */ -}}

{{- /* Argo CD: before the Job that migrates the database (-1), and before all else (0). */ -}}
{{- define "roost.firstWave" -}}
argocd.argoproj.io/sync-wave: "-2"
{{- end }}

{{- /* Call with `root`, `name`, `port`, `user` and `part` (the values); the container comes from `roost.NAME.container`. */ -}}
{{- define "roost.bundled" -}}
{{- $root := .root -}}
{{- $metadata := dict "root" $root "name" .name "component" .name "annotations" (include "roost.firstWave" $root | fromYaml) -}}
apiVersion: v1
kind: Service
metadata:
  {{- include "roost.metadata" $metadata | nindent 2 }}
spec:
  clusterIP: None
  ports:
    - {name: {{ .name }}, port: {{ .port }}, targetPort: {{ .name }}, protocol: TCP}
  selector:
    {{- include "roost.selectorLabels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .name }}
---
apiVersion: apps/v1
kind: StatefulSet
metadata:
  {{- include "roost.metadata" $metadata | nindent 2 }}
spec:
  serviceName: {{ include "roost.fullname" $root }}-{{ .name }}
  replicas: 1
  selector:
    matchLabels:
      {{- include "roost.selectorLabels" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .name }}
  template:
    metadata:
      labels:
        {{- include "roost.selectorLabels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ .name }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: 60
      {{- with include "roost.pullSecrets" $root | trim }}
      {{- . | nindent 6 }}
      {{- end }}
      securityContext:
        {{- include "roost.podSecurityContext" (dict "root" $root "user" .user) | nindent 8 }}
      containers:
        - name: {{ .name }}
          image: {{ printf "%s:%s" .part.image.repository .part.image.tag | quote }}
          imagePullPolicy: {{ .part.image.pullPolicy }}
          ports:
            - {name: {{ .name }}, containerPort: {{ .port }}, protocol: TCP}
          {{- include (printf "roost.%s.container" .name) $root | nindent 10 }}
          resources:
            {{- toYaml .part.resources | nindent 12 }}
          securityContext:
            {{- include "roost.securityContext" dict | nindent 12 }}
      volumes:
        - {name: tmp, emptyDir: {}}
        {{- include (printf "roost.%s.volumes" .name) $root | nindent 8 }}
  volumeClaimTemplates:
    - apiVersion: v1
      kind: PersistentVolumeClaim
      metadata: {name: data}
      spec:
        accessModes: [ReadWriteOnce]
        {{- with .part.storage.storageClass }}
        storageClassName: {{ . }}
        {{- end }}
        volumeMode: Filesystem
        resources: {requests: {storage: {{ .part.storage.size }}}}
{{- end }}

{{- define "roost.postgresql.container" -}}
env:
  - {name: POSTGRES_USER, value: roost}
  - {name: POSTGRES_DB, value: roost}
  - {name: POSTGRES_PASSWORD_FILE, value: /run/secrets/postgresql/password}
  - {name: PGDATA, value: /var/lib/postgresql/data/files} # a folder of its user below the volume, which root owns
readinessProbe:
  exec: {command: [pg_isready, --host, 127.0.0.1, --username, roost]}
  periodSeconds: 5
  timeoutSeconds: 3
volumeMounts:
  - {name: data, mountPath: /var/lib/postgresql/data}
  - {name: tmp, mountPath: /tmp}
  - {name: run, mountPath: /var/run/postgresql}
  - {name: password, mountPath: /run/secrets/postgresql, readOnly: true}
{{- end }}

{{- define "roost.postgresql.volumes" -}}
- {name: run, emptyDir: {}}
- name: password
  secret:
    secretName: {{ include "roost.databasePassword" . }}
    defaultMode: 0440
    items: [{key: {{ .Values.postgresql.password.key | quote }}, path: password}]
{{- end }}

{{- define "roost.s3.container" -}}
command:
  {{- toYaml .Values.s3.command | nindent 2 }}
env:
  {{- range $name, $key := dict .Values.s3.userVariable "AWS_ACCESS_KEY_ID" .Values.s3.passwordVariable "AWS_SECRET_ACCESS_KEY" }}
  - name: {{ $name }}
    valueFrom: {secretKeyRef: {name: {{ include "roost.bucketSecret" $ }}, key: {{ $key }}}}
  {{- end }}
  - {name: HOME, value: /tmp}
readinessProbe:
  tcpSocket: {port: s3}
  periodSeconds: 5
volumeMounts:
  - {name: data, mountPath: /data}
  - {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "roost.s3.volumes" -}}
{{- end }}
