export { de } from './addresses.de';
export { en } from './addresses.en';
