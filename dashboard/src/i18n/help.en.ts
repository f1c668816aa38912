export const en = { docs: 'Documentation', ofPage: 'Help for this page' };
