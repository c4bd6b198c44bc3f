// Finds nodes of an exported graph by name.
export interface Named {
  name: string;
  aliases: string[];
  degree: number;
}
const fold = (text: string): string => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
/** Positions of the nodes called like this, the best known first. */
export function findNodes(nodes: Named[], text: string): number[] {
  const wanted = fold(text.trim());
  if (!wanted) return [];
  return nodes
    .map((node, n): [number, number] => [fold([node.name, ...node.aliases].join("\n")).indexOf(wanted), n])
    .filter(([place]) => place >= 0)
    .sort((a, b) => a[0] - b[0] || nodes[b[1]]!.degree - nodes[a[1]]!.degree)
    .slice(0, 12)
    .map(([, n]) => n);
}
/** What to say of a name that is not drawn; quoted for a shell. */
export function describeMissing(shown: number, all: number, name: string): string {
  if (shown >= all) return "nothing here is called that";
  return `not among the ${shown} shown; clew export --around '${name.replaceAll("'", "'\\''")}' FILE.html draws what is around it`;
}
