export { de } from './help.de';
export { en } from './help.en';
