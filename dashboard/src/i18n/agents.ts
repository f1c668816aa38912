export { de } from './agents.de';
export { en } from './agents.en';
