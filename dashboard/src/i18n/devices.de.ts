import type { en } from './devices.en';

export const de: typeof en = {
  title: 'Geräte',
  lead: 'Apps und Computer, die sich mit einem eigenen Schlüssel mit dem Agenten verbinden.',
  pending: 'Warten auf Freigabe',
  paired: 'Freigegeben',
  approve: 'Freigeben',
  approveAll: 'Alle freigeben',
  approved: (name) => `${name} wurde freigegeben.`,
  approvedAll: (count) => (count === 1 ? '1 Gerät wurde freigegeben.' : `${count} Geräte wurden freigegeben.`),
  notApproved: (id) => `${id} wurde nicht freigegeben`,
  noPending: 'Kein Gerät wartet.',
  emptyTitle: 'Noch keine Geräte',
  emptyText: 'Verbinde eine App des Agenten mit seiner Adresse. Sie erscheint dann hier und wartet auf deine Freigabe.',
  unsupported: 'Diese Engine kennt keine Geräte.',
  unnamed: 'Gerät ohne Namen',
  repair: 'Bekannt, fragt erneut',
  from: (address) => `Von ${address}`,
  fromHere: 'Von diesem Rechner',
  connected: 'Verbunden',
};
