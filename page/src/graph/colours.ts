// Colours of types and communities, readable with white text and on both themes.
const PALETTE = ["#3f6ea3", "#b3621a", "#3d7f3a", "#94568a", "#8a6a08", "#247b7b", "#b04672", "#75583d", "#5568bd", "#52792c", "#8a4f74", "#356f92"];
export const colourOf = (number: number): string => (number < 0 ? "#7d7a75" : PALETTE[number % PALETTE.length]!);
