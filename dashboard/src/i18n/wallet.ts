export { de } from './wallet.de';
export { en } from './wallet.en';
