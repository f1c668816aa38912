import type { en } from './channels.en';

export const de: typeof en = {
  title: 'Kanäle',
  lead: 'Wo Menschen dem Agenten schreiben: seine Bots in Messengern.',
  names: { telegram: 'Telegram', slack: 'Slack', discord: 'Discord' },
  steps: {
    telegram: ['Schreibe in Telegram /newbot an @BotFather und wähle einen Namen.', 'Kopiere das Token aus der Antwort.'],
    slack: [
      'Lege auf api.slack.com/apps eine App an und schalte Socket Mode ein: Ihr App-Token beginnt mit xapp-.',
      'Gib dem Bot die Rechte chat:write, im:history und app_mentions:read, installiere die App und kopiere das Bot-Token, das mit xoxb- beginnt.',
    ],
    discord: [
      'Lege auf discord.com/developers eine Anwendung mit einem Bot an.',
      'Schalte „Message Content Intent“ ein und kopiere das Token des Bots.',
    ],
  },
  setUp: 'Einrichten',
  change: 'Ändern',
  setUpTitle: (name) => `${name} einrichten`,
  botToken: 'Bot-Token',
  appToken: 'App-Token',
  keep: 'Ein leeres Feld behält das jetzige.',
  policy: 'Wer dem Agenten schreiben darf',
  policies: { pairing: 'Nur wer freigegeben wurde', open: 'Alle' },
  saved: (name) => `${name} wurde eingerichtet.`,
  remove: 'Entfernen',
  removeTitle: (name) => `${name} entfernen`,
  removeText: 'Der Agent antwortet dort nicht mehr. Sein Token wird hier gelöscht; der Bot selbst bleibt.',
  removed: (name) => `${name} wurde entfernt.`,
  notSetUp: 'Nicht eingerichtet',
  connected: 'Verbunden',
  waiting: 'Nicht verbunden',
  disabled: 'Abgeschaltet',
  failed: 'Fehlgeschlagen',
  bot: (name) => `Bot @${name}`,
  token: (hint) => `Token ${hint}`,
};
