export { de } from './config.de';
export { en } from './config.en';
