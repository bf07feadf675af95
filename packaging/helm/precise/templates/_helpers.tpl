{{- define "precise.labels" -}}
app.kubernetes.io/name: precise
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "precise.name" -}}
{{- if contains "precise" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-precise{{ end }}
{{- end }}
