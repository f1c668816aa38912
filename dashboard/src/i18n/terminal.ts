export { en } from './terminal.en';
export { de } from './terminal.de';
