export { de } from './payments.de';
export { en } from './payments.en';
