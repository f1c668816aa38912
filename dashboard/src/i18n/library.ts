export { de } from './library.de';
export { en } from './library.en';
