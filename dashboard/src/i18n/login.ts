export { de } from './login.de';
export { en } from './login.en';
