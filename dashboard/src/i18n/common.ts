export { de } from './common.de';
export { en } from './common.en';
