export { de } from './devices.de';
export { en } from './devices.en';
