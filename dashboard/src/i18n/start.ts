export { de } from './start.de';
export { en } from './start.en';
