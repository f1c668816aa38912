export { de } from './agentSettings.de';
export { en } from './agentSettings.en';
