export { de } from './access.de';
export { en } from './access.en';
