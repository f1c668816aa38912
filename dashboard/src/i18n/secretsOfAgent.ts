export { de } from './secretsOfAgent.de';
export { en } from './secretsOfAgent.en';
