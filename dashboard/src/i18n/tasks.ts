export { de } from './tasks.de';
export { en } from './tasks.en';
