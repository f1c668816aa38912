export { de } from './reach.de';
export { en } from './reach.en';
