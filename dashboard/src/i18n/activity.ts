export { de } from './activity.de';
export { en } from './activity.en';
