export { de } from './gateways.de';
export { en } from './gateways.en';
