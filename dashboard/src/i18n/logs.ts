export { de } from './logs.de';
export { en } from './logs.en';
