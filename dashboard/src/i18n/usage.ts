export { de } from './usage.de';
export { en } from './usage.en';
