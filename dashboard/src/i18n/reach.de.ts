import type { en } from './reach.en';

const people = (count: number) => (count === 1 ? '1 Person' : `${count} Personen`);
const pathsOf = (paths: readonly string[]) => `${paths.length === 1 ? '1 Pfad' : `${paths.length} Pfade`}: ${paths.join(', ')}`;

export const de: typeof en = {
  gatewayCloses: (files) =>
    `Das Gateway ist dann nicht mehr für alle da: ${files === 1 ? '1 Datei, die hier jetzt alle lesen können, braucht' : `${files ?? 'die'} Dateien, die hier jetzt alle lesen können, brauchen`} ein erlaubtes Token, eine erlaubte Adresse oder einen erlaubten Host.`,
  gatewayOpens: (files) =>
    `Sonst beschränkt nichts dieses Gateway: ${files === 1 ? '1 öffentliche Datei von dir können' : `${files ?? 'die'} öffentlichen Dateien von dir können`} hier dann alle lesen, Inhalte anderer nicht mehr.`,
  controlRemoved: (left) =>
    `Wer es benutzt, kommt nicht mehr hinein. ${left === 1 ? '1 anderer Eintrag bleibt' : `${left} andere Einträge bleiben`}.`,
  gatewayDomain: (files, gateway) =>
    `Links über diese Domain funktionieren nicht mehr. ${files === 1 ? '1 öffentliche Datei bleibt' : `${files ?? 'Deine'} öffentliche Dateien bleiben`} unter ${gateway}.`,
  opens: (paths) => `Alle erreichen dann ohne Token ${pathsOf(paths)}`,
  closes: (paths) => `Jetzt für alle offen, dann nur mit dem Gateway-Token: ${pathsOf(paths)}`,
  ends: (paths) => `Führt nicht mehr zu einem Programm: ${pathsOf(paths)}`,
  domainOpens: (port) => `Alle können dann ohne Token über diese Domain das Programm an Port ${port} benutzen.`,
  domainCloses: 'Jetzt können alle diese Domain benutzen. Besucher brauchen dann das Gateway-Token.',
  groupGranted: (agent, files) =>
    `${agent}, und wer mit ihm spricht, kann dann die ${files} Dateien dieser Gruppe durchsuchen und zitieren.`,
  groupRevoked: (agent, files) => `${agent} kann die ${files} Dateien dieser Gruppe dann nicht mehr durchsuchen.`,
  groupDeleted: (agents) =>
    agents === 1 ? '1 Agent kann sie nicht mehr durchsuchen.' : `${agents} Agenten können sie nicht mehr durchsuchen.`,
  sells: (files) => `Alle, die bezahlen, können dann ${files === 1 ? '1 private Datei' : `${files} private Dateien`} lesen.`,
  unsold: 'Niemand kann diese 1 Datei mit dieser Anweisung noch kaufen.',
  priceChanges: (files) => `Wer die ${files} Dateien im Verkauf liest, zahlt dann nach diesen Bedingungen.`,
  channelOpens: (bot) => `Alle, die ${bot} finden, können dann den Agenten benutzen, und was er benutzen darf.`,
  channelBecomes: (before, after) => `Jetzt dürfen schreiben: ${before}. Dann: ${after}`,
  channelDrops: (count) => `${people(count)} können dem Agenten dann nicht mehr schreiben.`,
  channelAdds: (count) => `${people(count)} mehr können dem Agenten dann ohne Freigabe schreiben.`,
  channelOff: (who) => `Der Bot antwortet dann niemandem. Jetzt dürfen schreiben: ${who}`,
  channelOn: (who) => `Der Bot antwortet dann wieder. Es dürfen schreiben: ${who}`,
  personApproved: (who) => `1 Person, ${who}, kann dann den Agenten benutzen, und was er benutzen darf.`,
  devices: (count) =>
    count === 1
      ? '1 Gerät kann den Agenten dann mit einem eigenen Schlüssel steuern.'
      : `${count} Geräte können den Agenten dann steuern, jedes mit einem eigenen Schlüssel.`,
  secret: (name, others) =>
    `Der Agent, und wer ihn benutzen kann, kann dann ${name} benutzen. ${others === 1 ? '1 anderer Agent hat' : `${others} andere Agenten haben`} es jetzt.`,
  askFor: (action, name) => `${action}: ${name}`,
};
