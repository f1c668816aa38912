export { de } from './files.de';
export { en } from './files.en';
