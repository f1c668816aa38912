export { de } from './shell.de';
export { en } from './shell.en';
