{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- define "fairlead.check" -}}
{{- if and (gt (int .Values.replicas) 1) (not .Values.store.address) }}
{{- fail "replicas is above 1, and the journal in files: several daemons need store.address, a database postgresql://USER@HOST/DATABASE" }}
{{- end }}
{{- if and (gt (int .Values.replicas) 1) (not .Values.bodyKeySecret) }}
{{- fail "replicas is above 1 without bodyKeySecret: all must have the same key. Make one: head -c 32 /dev/urandom > body.key; kubectl create secret generic fairlead-body-key --from-file=body.key" }}
{{- end }}
{{- if and .Values.store.passwordSecret (not .Values.store.address) }}
{{- fail "store.passwordSecret without store.address: there is no database to give the password to" }}
{{- end }}
{{- if and (has "*" .Values.podNamespaces) (gt (len .Values.podNamespaces) 1) }}
{{- fail "podNamespaces names all namespaces (*) and some: say one or the other" }}
{{- end }}
{{- if gt (len .Release.Name) 50 }}
{{- fail "the release's name has more than 50 characters" }}
{{- end }}
{{- end }}

{{- define "fairlead.labels" -}}
app.kubernetes.io/name: fairlead
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
