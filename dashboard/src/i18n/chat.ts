export { de } from './chat.de';
export { en } from './chat.en';
