export { de } from './home.de';
export { en } from './home.en';
