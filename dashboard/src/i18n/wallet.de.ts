import type { en } from './wallet.en';

export const de: typeof en = {
  title: 'Wallet-Signatur',
  text: 'Mit einer Signatur deines Wallets stehst du zu diesem Inhalt. Gateways können sie mitsenden.',
  signed: 'Signiert',
  signature: 'Signatur',
  sign: 'Mit einem Wallet signieren',
  signWith: (wallet) => `Mit ${wallet} signieren`,
  signing: 'Im Wallet bestätigen ...',
  done: 'Die Datei ist signiert.',
  declined: 'Das Wallet hat nicht signiert.',
  remove: 'Signatur entfernen',
  removed: 'Die Signatur wurde entfernt.',
  none: 'Nicht signiert.',
  noWallet: 'Dieser Browser hat kein Wallet. Signiere die CID mit einem anderen und füge die Signatur auf der Kommandozeile hinzu:',
  command: 'Befehl, der eine Signatur hinzufügt',
};
