export { de } from './storage.de';
export { en } from './storage.en';
