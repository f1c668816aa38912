import { useEffect, useState } from 'react';

import styles from './ImageView.module.css';

interface Props {
  content: Blob;
  label: string;
  /** Text shown instead of content that the browser cannot read. */
  failure: string;
}

/** Show an image from its bytes. In an `img` element, browsers run no scripts of an SVG and load none of its links. */
export function ImageView({ content, label, failure }: Props) {
  const [address, setAddress] = useState<string | null>(null);
  const [isBroken, setBroken] = useState(false);
  useEffect(() => {
    const made = URL.createObjectURL(content);
    setAddress(made);
    setBroken(false);
    return () => URL.revokeObjectURL(made);
  }, [content]);
  if (isBroken) return <p>{failure}</p>;
  return address && <img className={styles.image} src={address} alt={label} onError={() => setBroken(true)} />;
}
