export { de } from './channels.de';
export { en } from './channels.en';
