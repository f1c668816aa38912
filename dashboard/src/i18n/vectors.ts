export { de } from './vectors.de';
export { en } from './vectors.en';
