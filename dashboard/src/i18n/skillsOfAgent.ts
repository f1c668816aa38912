export { de } from './skillsOfAgent.de';
export { en } from './skillsOfAgent.en';
