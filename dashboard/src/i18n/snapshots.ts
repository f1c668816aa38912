export { de } from './snapshots.de';
export { en } from './snapshots.en';
