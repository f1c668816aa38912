export { de } from './system.de';
export { en } from './system.en';
