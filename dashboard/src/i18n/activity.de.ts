import type { en } from './activity.en';

type Data = Readonly<Record<string, unknown>>;
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const states: Record<string, string> = {
  starting: 'startet',
  running: 'läuft',
  not_running: 'ist gestoppt',
  failed: 'ist fehlgeschlagen',
};
const work: Record<string, string> = {
  'agent.start': 'Start',
  'agent.delete': 'Löschen',
  'agent.update': 'Aktualisierung der Engine',
  'agent.snapshot': 'Schnappschuss',
  'agent.reset': 'Zurücksetzen auf einen Schnappschuss',
  'agent.restore': 'Wiederherstellen eines Schnappschusses',
  'agent.commit': 'Speichern der Dateihistorie',
  'agent.skills': 'Ausliefern von Skills',
  'agent.scripts': 'Skript des Manifests',
  'agent.push': 'Git-Push',
  'git.push': 'Git-Push',
  'agent.import_tasks': 'Import von Aufgaben',
  'vectors.vectorize': 'Indizieren einer Datei',
  'pins.retrieve': 'Laden gepinnter Inhalte',
};
const progress: Record<string, string> = {
  pending: 'wartet',
  paused: 'pausiert',
  running: 'läuft',
  done: 'ist fertig',
  failed: 'ist fehlgeschlagen',
};
const answers: Record<string, string> = {
  answering: 'Eine Nachricht ging an den Agenten',
  complete: 'Der Agent hat geantwortet',
  stopped: 'Eine Antwort wurde abgebrochen',
  failed: 'Eine Antwort ist fehlgeschlagen',
};
const actions: Record<string, string> = {
  created: 'angelegt',
  updated: 'geändert',
  deleted: 'gelöscht',
  saved: 'gespeichert',
  removed: 'entfernt',
  registered: 'hinzugefügt',
  attached: 'einem Agenten gegeben',
  detached: 'einem Agenten genommen',
  approved: 'zugelassen',
  rejected: 'abgelehnt',
};
const did = (action: unknown): string => actions[text(action)] ?? 'geändert';

export const de: typeof en = {
  title: 'Verlauf',
  lead: 'Was sich in der letzten Stunde geändert hat und was sich gerade ändert.',
  kind: 'Art',
  anyKind: 'Alle',
  agent: 'Agent',
  anyAgent: 'Alle',
  work,
  kinds: {
    agent: 'Agenten',
    operation: 'Hintergrundarbeit',
    conversation: 'Gespräche',
    task: 'Aufgaben',
    device: 'Geräte',
    channel: 'Kanäle',
    file: 'Gespeicherte Dateien',
    snapshot: 'Schnappschüsse',
    push: 'Git-Pushes',
    skill: 'Skills',
    secret: 'Geheimnisse',
    domain: 'Domains',
  },
  list: 'Änderungen, neueste zuerst',
  empty: 'In der letzten Stunde hat sich nichts geändert',
  emptyText: 'Lege einen Agenten an, lade eine Datei hoch oder starte eine Aufgabe: Es erscheint hier sofort.',
  noMatch: 'Nichts von dieser Art in der letzten Stunde.',
  showAll: 'Alles zeigen',
  cut: 'Nur die neuesten 1.000 Änderungen sind zu sehen.',
  all: 'Der ganze Verlauf dieses Agenten',
  ofAgent: 'Verlauf',
  quiet: 'In der letzten Stunde hat sich nichts geändert.',
  reason: 'Grund',
  actors: {
    key: (name: string | null) => (name ? `durch den Schlüssel ${name}` : 'mit einem API-Schlüssel'),
    session: (name: string | null) => (name ? `im Browser, durch den Schlüssel ${name}` : 'im Browser'),
    token: () => 'durch den Inhaber des Agenten-Tokens',
    agent: () => 'durch den Agenten selbst',
    signed_url: () => 'durch eine signierte URL',
    server: () => 'durch den Server',
  },
  events: {
    'agent.created': (data: Data) => `Agent ${text(data.name)} wurde angelegt`,
    'agent.changed': (data: Data) =>
      data.action === 'routes_removed'
        ? `Routen von Agent ${text(data.name)} zu Ports von Roost wurden entfernt: ${text(data.routes)}`
        : `Agent ${text(data.name)} ${states[text(data.state)] ?? 'wurde geändert'}`,
    'agent.deleted': () => 'Ein Agent wurde gelöscht',
    'operation.changed': (data: Data) =>
      `${work[text(data.kind)] ?? text(data.kind)} ${progress[text(data.state)] ?? 'wurde geändert'}`,
    'task.changed': (data: Data) => `Aufgabe ${text(data.name)} wurde ${did(data.action)}`,
    'task.run': () => 'Eine Aufgabe wurde gestartet',
    'device.changed': (data: Data) => `Ein Gerät wurde ${did(data.action)}`,
    'channel.changed': (data: Data) => `Ein Kanal wurde ${did(data.action)}`,
    'conversation.changed': (data: Data) => answers[text(data.state)] ?? 'Ein Gespräch wurde geändert',
    'file.added': (data: Data) => `Datei ${text(data.name)} wurde gespeichert`,
    'file.updated': (data: Data) => `Datei ${text(data.name)} wurde geändert`,
    'file.deleted': (data: Data) => `Datei ${text(data.name)} wurde gelöscht`,
    'snapshot.created': () => 'Ein Schnappschuss wurde gemacht',
    'snapshot.failed': () => 'Die Dateien eines Agenten konnten nicht gespeichert werden',
    'push.failed': () => 'Ein Git-Push wurde rückgängig gemacht',
    'skill.changed': (data: Data) => `Skill ${text(data.name)} wurde ${did(data.action)}`,
    'secret.changed': (data: Data) => `Geheimnis ${text(data.name)} wurde ${did(data.action)}`,
    'domain.changed': (data: Data) => `Domain ${text(data.name)} wurde ${did(data.action)}`,
  },
};
