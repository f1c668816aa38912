export { de } from './drafts.de';
export { en } from './drafts.en';
